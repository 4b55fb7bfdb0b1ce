"""A model's 32-bit floats as 16-bit ones: conversion by the reference, its repair, and what it does to the answers."""
