if(NOT WEIR_WHEEL)
  include(GoogleTest)
endif()

# compile_together(TARGET [file...]): the target's files in groups, but for those named.
function(compile_together target)
  if(NOT WEIR_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # a group's main file is none of them
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# add_module(NAME USES module... LIBS library... [ALONE file...] [PROGRAM program])
#
# Makes the library weir_NAME (or, where PROGRAM is given, that program at the top of the build folder) of every .cc in this folder (and its sub-folders, but testing/) and, of every
# *_test.cc, the test program NAME_test. USES names the modules whose headers this one may include; the
# layering check (tools/check_layering.py) holds the includes against it. Fakes in testing/*.cc make the
# library weir_NAME_testing, which the tests of this module and of those that use it are linked to.
# Up to eight files are compiled as one, since most of a file's time goes into the headers it shares with the others.
# ALONE names the files for which that cannot be: a name of their own that another file of the module has as well, or a
# source that includes itself. -DWEIR_UNITY=OFF compiles each alone.
function(add_module name)
  cmake_parse_arguments(ARG "" "PROGRAM" "USES;LIBS;ALONE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "*.cc")
  set(tests ${sources})
  set(fakes ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fakes INCLUDE REGEX "/testing/")
  list(FILTER sources EXCLUDE REGEX "(_test\\.cc$|/testing/)")

  set(modules ${ARG_USES})
  if(NOT name STREQUAL "base")
    list(APPEND modules base)
  endif()
  list(TRANSFORM modules PREPEND "weir_")

  if(ARG_PROGRAM)
    add_executable(${ARG_PROGRAM} ${sources})
    target_link_libraries(${ARG_PROGRAM} PRIVATE ${modules} ${ARG_LIBS})
    set_target_properties(${ARG_PROGRAM} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    return()
  endif()
  if(sources)
    add_library(weir_${name} STATIC ${sources})
    compile_together(weir_${name} ${ARG_ALONE})
    set(scope PUBLIC)
  else()
    add_library(weir_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(weir_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(weir_${name} ${scope} ${modules} ${ARG_LIBS} fmt::fmt Threads::Threads)

  if(fakes AND NOT WEIR_WHEEL)
    add_library(weir_${name}_testing STATIC EXCLUDE_FROM_ALL ${fakes})
    target_link_libraries(weir_${name}_testing PUBLIC weir_${name} GTest::gmock)
  endif()
  if(tests AND NOT WEIR_WHEEL)
    add_executable(${name}_test ${tests})
    foreach(module ${name} ${ARG_USES})
      if(TARGET weir_${module}_testing)
        target_link_libraries(${name}_test PRIVATE weir_${module}_testing)
      endif()
    endforeach()
    target_link_libraries(${name}_test PRIVATE weir_${name} GTest::gmock GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE -O0)  # half the compile time; the code under test keeps its level
    compile_together(${name}_test ${ARG_ALONE})
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
      PROPERTIES LABELS unit TIMEOUT 120)
  endif()
endfunction()
