"""DynamicResources: devices are allocated to the claims of pods."""
