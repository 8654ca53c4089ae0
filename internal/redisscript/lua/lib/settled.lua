-- A step that ends or extends a lease has to work even if memory is full. GETEX changes
-- nothing, but Redis lets a script that has called a writing command write more.
call('GETEX', S)
settle()
