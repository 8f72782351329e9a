#include "rpc/status_mapping.h"
#include <gtest/gtest.h>
TEST(A,B){}
