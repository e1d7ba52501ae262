"""Agent profiles: a workspace's named, versioned ways to have a language model write kernels."""
