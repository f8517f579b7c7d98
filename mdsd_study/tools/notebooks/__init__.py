"""The driver that runs the notebooks which are not up to date."""
