"""Tell whether a candidate passes the tests of a task, without believing what its process says."""
