"""The running scheduler: what happens in the cluster goes in, what is decided is carried out."""
