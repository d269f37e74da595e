"""Run a training on this machine or elsewhere, and find a job again that was submitted before."""
