"""DynamicResources: allocates devices to the claims of pods."""
