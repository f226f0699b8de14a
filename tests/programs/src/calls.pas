// SPDX-License-Identifier: BSD-2-Clause
// calls.pas: recursion and texts of numbers, for ever.
program calls;

{$mode objfpc}{$H+}

uses
  SysUtils;

function fib(n: longint): longint;
begin
  if n < 2 then
    fib := n
  else
    fib := fib(n - 1) + fib(n - 2);
end;

function area(n: longint): longint;
var
  i: longint;
  s: string;
begin
  area := 0;
  for i := 1 to 200 do
  begin
    s := IntToStr(i * n mod 100000);
    area := area + length(s);
  end;
end;

function step(n: longint): longint;
begin
  step := area(n) + fib(16);
end;

var
  n: longint = 0;
  total: int64 = 0;
begin
  while true do
  begin
    n := (n + 1) mod 10000;
    total := total + step(n);
  end;
end.
