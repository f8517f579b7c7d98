"""What looks at the size of the code, at two builds of the book, and at the GPU of a machine."""
