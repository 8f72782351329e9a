# etalon_proto(NAME proto FILES etalon/v1/a.proto ...)       -> etalon_<name>: messages only, no gRPC
# etalon_grpc(NAME services FILES ... DEPS proto)            -> etalon_<name>: gRPC service stubs of the same files
function(etalon_proto)
  cmake_parse_arguments(A "" "NAME" "FILES" ${ARGN})
  set(out ${PROJECT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  set(sources "")
  foreach(file ${A_FILES})
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND protobuf::protoc --cpp_out=${out} -I ${PROJECT_SOURCE_DIR}/proto ${PROJECT_SOURCE_DIR}/proto/${file}
      DEPENDS ${PROJECT_SOURCE_DIR}/proto/${file} VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc)
  endforeach()
  add_library(etalon_${A_NAME} STATIC ${sources})
  target_include_directories(etalon_${A_NAME} SYSTEM PUBLIC ${out})
  target_link_libraries(etalon_${A_NAME} PUBLIC protobuf::libprotobuf)
endfunction()

function(etalon_grpc)
  cmake_parse_arguments(A "" "NAME" "FILES;DEPS" ${ARGN})
  set(out ${PROJECT_BINARY_DIR}/generated)
  set(sources "")
  foreach(file ${A_FILES})
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    add_custom_command(
      OUTPUT ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h
      COMMAND protobuf::protoc --grpc_out=${out} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>
              -I ${PROJECT_SOURCE_DIR}/proto ${PROJECT_SOURCE_DIR}/proto/${file}
      DEPENDS ${PROJECT_SOURCE_DIR}/proto/${file} VERBATIM)
    list(APPEND sources ${out}/${stem}.grpc.pb.cc)
  endforeach()
  set(deps ${A_DEPS})
  list(TRANSFORM deps PREPEND etalon_)
  add_library(etalon_${A_NAME} STATIC ${sources})
  target_include_directories(etalon_${A_NAME} SYSTEM PUBLIC ${out})
  target_link_libraries(etalon_${A_NAME} PUBLIC ${deps} gRPC::grpc++)
endfunction()
