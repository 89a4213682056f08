find_package(PkgConfig REQUIRED)

# weir_grpc: gRPC from its archives, which name each other in circles, instead of its shared libraries, through which a small call
# costs half as much again (docs/performance.md). Without transport security, which weir has none of; with it, grpc++ is the package.
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
if(WEIR_SANITIZE STREQUAL "thread")
  # Code that was compiled without ThreadSanitizer is told from ours by the library it lies in.
  target_link_libraries(weir_grpc INTERFACE ${GRPC_LINK_LIBRARIES} Threads::Threads)
else()
  target_link_libraries(weir_grpc INTERFACE "$<LINK_GROUP:RESCAN,${archives}>" z Threads::Threads)
endif()
