"""Time a model beside another."""
