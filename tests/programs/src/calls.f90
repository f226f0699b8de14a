! SPDX-License-Identifier: BSD-2-Clause
! calls.f90: matrices, recursion and formatted text, for ever.
module shop
  implicit none
contains
  recursive function fib(n) result(r)
    integer, intent(in) :: n
    integer :: r
    if (n < 2) then
      r = n
    else
      r = fib(n - 1) + fib(n - 2)
    end if
  end function

  subroutine multiplies(a, b, c)
    real(8), intent(in) :: a(:, :), b(:, :)
    real(8), intent(out) :: c(:, :)
    integer :: i, j, k
    c = 0
    do j = 1, size(b, 2)
      do k = 1, size(a, 2)
        do i = 1, size(a, 1)
          c(i, j) = c(i, j) + a(i, k) * b(k, j)
        end do
      end do
    end do
  end subroutine

  subroutine writes(x, text)
    real(8), intent(in) :: x
    character(len=*), intent(out) :: text
    write (text, '(f20.6, i8)') x, 7
  end subroutine
end module

program calls
  use shop
  implicit none
  real(8) :: a(60, 60), b(60, 60), c(60, 60)
  character(len=40) :: text
  integer :: n, total
  call random_number(a)
  call random_number(b)
  total = 0
  do n = 1, huge(n)
    call multiplies(a, b, c)
    total = mod(total + fib(18), 1000)
    call writes(c(1, 1), text)
    a(1, 1) = len_trim(text) + total
  end do
end program
