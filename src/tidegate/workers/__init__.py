"""Worker processes: Lua, CEL, jq, Helm and Jsonnet."""
