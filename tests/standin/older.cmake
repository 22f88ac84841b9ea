# Writes the export map of a driver of VERSION (12040 is 12.4): all functions but those that came later.
# The toolkit's types tell how many versions of a name are newer. Each added a symbol of its own, the
# name with the next number, so the newest symbols are the ones that the driver lacks.
function(_weir_standin_older version output)
  file(STRINGS "${CMAKE_CURRENT_BINARY_DIR}/typedefs.inc" lines REGEX "^PLAIN")
  set(bases)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^PLAIN\\((.*), ([0-9]+)\\)$" "\\1;\\2" parts "${line}")
    list(GET parts 0 base)
    list(GET parts 1 since)
    if(since GREATER version)
      list(APPEND bases ${base})
      math(EXPR newer_${base} "0${newer_${base}} + 1")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES bases)
  file(STRINGS "${CMAKE_CURRENT_BINARY_DIR}/standin_driver_rest.inc" names)
  list(TRANSFORM names REPLACE "^REST\\((.*)\\)$" "\\1")
  set(missing)
  foreach(base IN LISTS bases)
    set(symbols ${names})
    list(FILTER symbols INCLUDE REGEX "^${base}(_v[0-9]+)?$")
    list(SORT symbols ORDER DESCENDING)
    list(SUBLIST symbols 0 ${newer_${base}} symbols)
    foreach(symbol IN LISTS symbols)
      list(APPEND missing ${symbol} ${symbol}_ptsz ${symbol}_ptds)
    endforeach()
  endforeach()
  list(LENGTH bases count)
  if(count LESS 10)
    message(FATAL_ERROR "Only ${count} functions are newer than ${version}")
  endif()
  list(JOIN missing ";\n    " missing)
  file(CONFIGURE OUTPUT "${output}" CONTENT "{
  global:
    cu[A-Z]*;
    weir_standin_*;
  local:
    ${missing};
    *;
};
")
endfunction()
