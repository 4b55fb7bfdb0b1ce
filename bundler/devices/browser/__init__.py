"""The browser as a device: it opens pages, served from this machine, and receives what they post."""
