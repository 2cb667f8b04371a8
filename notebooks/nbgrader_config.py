"""Settings for nbgrader. The student copies are the source of an assignment: they contain no solutions to clear."""

from nbgrader.preprocessors import CheckCellMetadata, ComputeChecksums, IncludeHeaderFooter, LockCells, SaveCells

c = get_config()  # noqa: F821 - nbgrader defines it
c.CourseDirectory.course_id = "ledger-toolkit"
c.GenerateAssignment.preprocessors = [IncludeHeaderFooter, LockCells, ComputeChecksums, SaveCells, CheckCellMetadata]
c.Execute.timeout = 120
c.Execute.interrupt_on_timeout = True
