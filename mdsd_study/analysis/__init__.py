"""What the notebooks compute beside the sweeps: one question a module."""
