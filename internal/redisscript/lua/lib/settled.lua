-- A step that ends or extends a lease has to work even if memory is full. GETEX changes
-- nothing, but counts as a write, and Redis lets a script that has written write more.
call('GETEX', S)
settle()
