"""Pages of servers: the list and one server, what is done to one, and registering one."""
