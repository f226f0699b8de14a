--  SPDX-License-Identifier: BSD-2-Clause
--  calls.adb: two tasks that recurse, raise and handle exceptions, for ever.
procedure Calls is
   Wrong : exception;

   function Fib (N : Natural) return Natural is
     (if N < 2 then N else Fib (N - 1) + Fib (N - 2));

   procedure Fails (N : Natural) is
   begin
      if N mod 8 = 0 then
         raise Wrong;
      end if;
   end Fails;

   procedure Works (N : Natural; Total : in out Natural) is
   begin
      Total := (Total + Fib (19)) mod 1000;
      Fails (N);
   exception
      when Wrong =>
         Total := Total + 1;
   end Works;

   procedure Works_On is
      Total : Natural := 0;
      N     : Natural := 0;
   begin
      loop
         N := (N + 1) mod 1000;
         Works (N, Total);
      end loop;
   end Works_On;

   task type Worker;
   task body Worker is
   begin
      Works_On;
   end Worker;

   Other : Worker;
begin
   Works_On;
end Calls;
