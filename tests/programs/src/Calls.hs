-- SPDX-License-Identifier: BSD-2-Clause
-- Calls.hs: a map that is filled and folded, and naive recursion, for ever.
module Main (main) where

import Control.Monad (forever)
import Data.IORef
import Data.List (foldl', sort)

fib :: Int -> Integer
fib n = if n < 2 then toInteger n else fib (n - 1) + fib (n - 2)

sorts :: Int -> Int
sorts n = foldl' (+) 0 (sort [(i * 7919) `mod` 1009 | i <- [1 .. n]])

main :: IO ()
main = do
  turns <- newIORef (0 :: Int)
  forever $ do
    modifyIORef' turns (+ 1)
    n <- readIORef turns
    let total = fib (18 + n `mod` 3) + toInteger (sorts (500 + n `mod` 7))
    total `seq` return ()
