"""One build, from the request to the published bundle."""
