"""The agent in our ramdisk: fetches its plan with a one-time key, wipes, reports."""

VERSION = "1.0"
