#include "engine/consensus/consensus.h"

#include <gtest/gtest.h>
TEST(X, Y) {}
