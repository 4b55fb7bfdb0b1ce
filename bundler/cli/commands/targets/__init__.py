"""`bundler targets`: the devices that bundles are built for, and profiles of one's own."""
