find_package(Protobuf REQUIRED)

# add_messages(NAME file.proto...)
#
# Makes the library NAME of the messages of these files, generated into the build folder as "MODULE/file.pb.h". With GRPC as
# the first file name, the services too ("MODULE/file.grpc.pb.h"). Their warnings are not ours.
function(add_messages name)
  cmake_parse_arguments(ARG "GRPC" "" "" ${ARGN})
  set(generated ${CMAKE_BINARY_DIR}/generated)
  file(RELATIVE_PATH module ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  set(sources)
  foreach(file ${ARG_UNPARSED_ARGUMENTS})
    get_filename_component(stem ${file} NAME_WE)
    set(base ${generated}/${module}/${stem})
    set(outputs ${base}.pb.cc ${base}.pb.h)
    set(services)
    if(ARG_GRPC)
      list(APPEND outputs ${base}.grpc.pb.cc ${base}.grpc.pb.h)
      set(services --grpc_out=${generated} --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin)
    endif()
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
      COMMAND protobuf::protoc -I ${CMAKE_SOURCE_DIR}/src --cpp_out=${generated} ${services} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
      DEPENDS ${file})
    list(APPEND sources ${outputs})
  endforeach()
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC ${generated})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
  target_compile_options(${name} PRIVATE -w)
endfunction()
