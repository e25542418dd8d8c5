"""What GPUAware does on OpenB, the trace of a GPU cluster in production."""
