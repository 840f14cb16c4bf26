"""Which refusals of a lock are let pass."""

import errno

# How file systems say that they cannot lock (network ones do): work there goes on without the guard.
WITHOUT_LOCKS = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
