"""The lab's hardware: BMCs, machines, switch, images and the door, one physics."""
