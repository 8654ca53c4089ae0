package mysqllock

// Driver is the type of all drivers of this package.
type Driver = lockDriver
