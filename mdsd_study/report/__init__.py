"""What is written down: results files, recorded runs, figures, tables, the findings of the papers."""
