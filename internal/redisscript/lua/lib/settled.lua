-- A step that ends a lease or extends it goes on when memory is full. GETEX changes
-- nothing, but a script that has written something may write more.
call('GETEX', S)
settle()
