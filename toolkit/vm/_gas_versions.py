"""Gas feature versions from which a node charges differently, by what changes.

The prices that came with a version are listed in `_schedule`.
"""

WRITE_LIMITS = 11  # the number of writes is limited, and their sizes
WHOLE_SLOTS = 12  # io is by whole pages and keys, and a charge that exceeds the rest takes it
REFUNDABLE_BYTES = 13  # slots and bytes have deposits, if the feature is on
LEGACY_NAMES = 14  # prices of storage without deposits are named `legacy_`
DEPENDENCIES = 15  # modules are charged and limited
TYPE_LIMITS = 20  # the schedule limits types
TYPE_ARGUMENTS = 31  # modules of type arguments are charged too
LARGER_LAYOUTS = 34
NATIVES_AT_ONCE = 36  # each charge of a native is booked at once; before, their sum when it returns or aborts
LIMITS_BY_NAME = 42  # dependencies and memory that exceed a limit keep their status
