"""Reading: files of a project as plain values, each with the line it stands on."""
