"""The browser as a device: it opens pages, served from this machine, and hears what they post."""
