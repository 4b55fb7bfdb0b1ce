"""One way to run a bundle somewhere: this machine, an emulator, a browser, and what third parties bring."""
