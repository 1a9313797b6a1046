"""Metal3 of the lab: the BareMetalHost operator and Ironic, driven by Redfish and ramdisks."""
