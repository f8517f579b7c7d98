"""What looks at a built book, and at a machine: browser, links, two builds, the GPU."""
