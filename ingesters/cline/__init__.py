"""Read task histories of Cline and Roo Code."""
