-- A step that ends or extends a lease must work even if the memory is full. GETEX changes
-- nothing, but counts as a write, and Redis lets a script that has written write more.
call('GETEX', S)
settle()
