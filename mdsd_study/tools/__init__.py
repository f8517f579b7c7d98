"""What turns notebooks and pages into a book: the driver, the stage step, the reproduction check."""
