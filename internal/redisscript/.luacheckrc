-- For `luacheck testdata`: the scripts as they are sent. That names are declared is tested
-- without it, too.
std = "lua51"
read_globals = { "redis", "struct", "KEYS", "ARGV" }
ignore = {
  "211", "221", "231", "4", -- a script has parts that it uses only in part, and they name things alike
  "58", -- `not (x <= y)` is right for NaN
}
max_line_length = false
