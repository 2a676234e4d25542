
import time
from oprack.io import DataLoader
class Hangs:
    def __len__(self): return 8
    def __getitem__(self, i):
        if i == 5: time.sleep(15)   # stands for ever: a dead mount, a lock
        return i
if __name__ == "__main__":
    try: list(DataLoader(Hangs(), 2, num_workers=1, timeout=0.5))
    except Exception as e: print("raised", type(e).__module__, type(e).__name__, repr(str(e)), flush=True)
    print("main is done", time.time(), flush=True)
