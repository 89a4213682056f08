find_package(PkgConfig REQUIRED)

# gRPC without its transport security, as one library weir_grpc, put into the program: a call through the shared libraries costs
# half as much again (docs/performance.md). Its archives name each other in circles. Every server and client of ours speaks
# through a port that is made secure outside of it.
pkg_check_modules(GRPC REQUIRED grpc++_unsecure)
set(archives)
foreach(name IN LISTS GRPC_STATIC_LIBRARIES ITEMS address_sorting re2 upb cares)
  if(name MATCHES "^(grpc|gpr|absl_|address_sorting|re2|upb|cares)")
    find_library(GRPC_${name}_ARCHIVE lib${name}.a REQUIRED)
    mark_as_advanced(GRPC_${name}_ARCHIVE)
    list(APPEND archives ${GRPC_${name}_ARCHIVE})
  endif()
endforeach()
list(REMOVE_DUPLICATES archives)
add_library(weir_grpc INTERFACE)
target_include_directories(weir_grpc SYSTEM INTERFACE ${GRPC_INCLUDE_DIRS})
target_link_libraries(weir_grpc INTERFACE "$<LINK_GROUP:RESCAN,${archives}>" z Threads::Threads)
