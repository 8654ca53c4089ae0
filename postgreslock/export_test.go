package postgreslock

// Driver is the driver, with all that it can do.
type Driver = lockDriver
