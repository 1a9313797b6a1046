"""The BMCs: one Redfish service per server, over one shared asynchronous application."""
