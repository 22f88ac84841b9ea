# Writes OUTPUT, a source with the files of INPUTS as texts, each with its SHA-256. INPUTS is
# `name=path|name=path`; files of one name are joined in order. Drops lines that name a source map,
# because a self-contained page has none.
set(source "#include \"tools/timeline/page/data.hpp\"\n\nnamespace weir::timeline {\n")
string(REPLACE "|" ";" INPUTS "${INPUTS}")
foreach(input IN LISTS INPUTS)
  string(REGEX MATCH "^([A-Za-z]+)=(.*)$" matched "${input}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" text)
  string(REGEX REPLACE "//# sourceMappingURL=[^\n]*" "" text "${text}")
  list(APPEND names ${name})
  string(APPEND text_${name} "${text}")
endforeach()
list(REMOVE_DUPLICATES names)
foreach(name IN LISTS names)
  string(SHA256 hash "${text_${name}}")
  string(APPEND source "const Asset ${name}{R\"weir-page(" "${text_${name}}"
         ")weir-page\",\n\"${hash}\"};\n")
endforeach()
string(APPEND source "}  // namespace weir::timeline\n")
file(WRITE "${OUTPUT}" "${source}")
