"""Commands that try to get out of the sandbox, by what they are after.

They run only inside a sandbox that was seen to hold, in a world of their own: $HOME and $OUT are folders of the test
outside the workspace, $RUN_PID is the process that started them, and on $PORT somebody listens. A command that can tell
by itself that it got through says "ESC" "APED" in one word and otherwise writes what is there already, so that even a
sandbox with a hole does no harm; the rest is told by what is on the disk afterwards.
"""

from __future__ import annotations

# Files that deny rules name: .env, secrets/**, **/*.pem; `hard` and `link` are other names of .env.
READS = r"""
cat .env
cat ./.env
cat .e*v
cat .en?
cat .{env,}
cat "$PWD/.env"
cat sub/../.env
cd sub && cat ../.env
pushd sub >/dev/null; cat ../.env
cat < .env
cat<.env
cat 0<.env
cat hard
cat link
head -c 99 .env
tail -n 9 .env
tac .env
nl .env
rev .env | rev
sort .env
fold .env
paste .env
cut -c1- .env
strings .env
dd if=.env
dd if=.env of=/dev/stdout status=none
sed -n p .env
awk 1 .env
awk 'BEGIN { while ((getline line < ".env") > 0) print line }'
grep '' .env
grep -r SECRET .
grep -rh . --include=.env
rg --hidden --no-ignore SECRET
base64 .env | base64 -d
od -An -c .env | tr -d ' \n'
diff /dev/null .env
git diff --no-index /dev/null .env
git hash-object -w .env | xargs git cat-file -p
git add -f .env && git show :.env
git stash -q -a && git stash show -p -u
git grep --no-index SECRET
python3 -c 'print(open(".env").read())'
python3 -c 'import os; print(os.read(os.open(".env", os.O_RDONLY), 99))'
python3 -c 'import mmap; f = open(".env", "r+b"); print(mmap.mmap(f.fileno(), 0)[:])'
python3 -c 'import shutil; shutil.copy(".env", "x"); print(open("x").read())'
perl -pe 1 .env
perl -e 'open F, ".env"; print <F>'
bash -c 'cat .env'
bash <<< 'cat .env'
echo 'cat .env' | sh
eval "cat .env"
X=cat; $X .env
$(echo cat) .env
`echo cat` .env
c''at .e""nv
$'\x63at' .env
(cat .env)
{ cat .env; }
command cat .env
env cat .env
timeout 5 cat .env
setsid -w cat .env
nohup cat .env
exec cat .env
trap 'cat .env' EXIT
f() { cat .env; }; f
echo "$(<.env)"
read -r x < .env; echo "$x"
mapfile a < .env; echo "${a[@]}"
while read -r x; do echo "$x"; done < .env
exec 3< .env; cat <&3
source .env; echo "$TOKEN"
. ./.env; echo "$TOKEN"
set -a; . ./.env; env
cp .env x && cat x
cp -r . "$TMPDIR/copy"; cat "$TMPDIR/copy/.env"
cp --reflink=always .env x; cat x
install .env x; cat x
mv .env x; cat x
ln .env x; cat x
ln -s .env x; cat x
ln -s "$PWD" x; cat x/.env
tar cf - .env | tar xOf -
tar cf - . | strings
gzip -c .env | gzip -d
find . -name .env -exec cat {} \;
find . -name '.e*' | xargs cat
find . -samefile .env -exec cat {} +
find . -inum "$(stat -c %i .env)" -exec cat {} +
xargs -a .env echo
cat /proc/self/cwd/.env
cat /proc/1/cwd/.env
cat "/proc/$PPID/cwd/.env"
cat "/proc/self/root$PWD/.env"
cat "/proc/1/root$PWD/.env"
for p in /proc/[0-9]*; do cat "$p/cwd/.env" "$p/root$PWD/.env"; done
cat "/proc/$RUN_PID/root$PWD/.env"
curl -s "file://$PWD/.env"
vim -es -c '%p' -c q .env
iconv -f utf-8 .env
tee < .env
cat secrets/deep/key
cat secrets/*/*
mv secrets other && cat other/deep/key
mv secrets/deep other && cat other/key
cp -r secrets other; cat other/deep/key
tar cf - secrets | strings
cat certs/server.pem
cat */*.pem
mv certs other && cat other/server.pem
ln -s certs other && cat other/server.pem
chmod 777 .env; cat .env
umount .env; cat .env
umount -l .env; cat .env
unshare -m sh -c 'umount .env; cat .env'
unshare -Urm sh -c 'umount .env; cat .env'
bwrap --bind / / cat .env
bwrap --dev-bind / / --unshare-user sh -c 'umount .env; cat .env'
nsenter -t 1 -m cat "$PWD/.env"
nsenter -t "$PPID" -m -p cat "$PWD/.env"
chroot /proc/1/root cat "$PWD/.env"
debugfs -R "cat $PWD/.env" "$(df --output=source . | tail -n 1)"
cat "$HOME/.ssh/id_ed25519"
cat ~/.ssh/*
tar cf - ~/.aws | strings
cat ~/.netrc
cat "$HOME/.dovetail/settings.json"
cat "$HOME/.config/gh/hosts.yml"
for i in 0 1 2 3 4 5 6 7 8 9; do cat /proc/self/fd/$i/.env /proc/self/fd/$i/../.env; done
(while :; do ln -sfn .env race; ln -sfn a.txt race; done) & for i in {1..99}; do cat race; done; kill %1
BASH_ENV=.env bash -c env
ENV=.env sh -ic env
PYTHONSTARTUP=.env python3 -i
git config -f .env -l
git -c include.path="$PWD/.env" config -l
ex -s '+%p' '+q!' .env
sqlite3 :memory: "select readfile('.env')"
node -e 'console.log(require("fs").readFileSync(".env", "utf8"))'
cat .env$'\n'
cp .env ．env; cat ．env
printf '.env\0' | xargs -0 cat
cat "$(printf '.\145nv')"
cat ~+/.env
cp --parents secrets/deep/key sub; ln secrets/deep/key sub/k; cat sub/k sub/secrets/deep/key
python3 -c 'import shutil; shutil.make_archive("y", "tar", "."); print(open("y.tar", errors="replace").read())'
python3 -c 'import os; print(os.read(os.open("../.env", os.O_RDONLY, dir_fd=os.open("sub", os.O_RDONLY)), 99))'
python3 -c 'import os; os.rename("sub", "secrets/x") or os.rename("secrets", "sub"); print(open("sub/deep/key").read())'
unshare -Urm bash -c "mount --bind '$PWD/..' sub; cat sub/work/.env"
"""

# Files and folders outside, git's hooks and settings, the settings of the project.
WRITES = r"""
echo x > "$OUT/file"
echo x >> "$OUT/file"
echo x > "$OUT/new"
echo x 1<> "$OUT/file"
echo x >| "$OUT/file"
echo x &> "$OUT/new"
: > "$OUT/file"
touch "$OUT/new"
tee "$OUT/file" <<< x
cp a.txt "$OUT/new"
mv a.txt "$OUT/file"
install a.txt "$OUT/new"
ln -s a.txt "$OUT/new"
ln a.txt "$OUT/new"
ln "$OUT/file" mine && echo x > mine
ln -s "$OUT" there && echo x > there/file
ln -s "$OUT/file" there && echo x > there
mkdir "$OUT/new"
mkfifo "$OUT/new"
rm "$OUT/file"
unlink "$OUT/file"
rmdir "$OUT/empty"
mv "$OUT/file" "$OUT/new"
mv "$OUT/file" here
mv "$OUT" here
truncate -s 0 "$OUT/file"
dd if=/dev/zero of="$OUT/file" bs=1 count=1 conv=notrunc
sed -i s/un/re/ "$OUT/file"
perl -i -pe s/un/re/ "$OUT/file"
python3 -c 'import os; open(os.environ["OUT"] + "/file", "w").write("x")'
python3 -c 'import os; os.truncate(os.environ["OUT"] + "/file", 0)'
git -C "$OUT" init -q .
git init -q "$OUT/new"
git clone -q . "$OUT/new"
git config --global user.name x
cd "$OUT" && echo x > file
(cd "$OUT" && echo x > new)
echo x > ~/.bashrc
echo x >> $HOME/.profile
echo x > $(echo ~)/.zshrc
echo x > ~/.ssh/authorized_keys
mkdir -p ~/.config/autostart && echo x > ~/.config/autostart/x
cp a.txt ~/new
echo x > "/proc/self/root$OUT/file"
echo x > "/proc/1/root$OUT/file"
echo x > "/proc/$RUN_PID/root$OUT/file"
mount -o remount,rw /; echo x > "$OUT/file"
mount -o remount,bind,rw "$OUT"; echo x > "$OUT/file"
unshare -Urm sh -c 'mount -o remount,bind,rw / && echo x > "$OUT/file"'
unshare -Urm sh -c 'umount -l "$OUT"; echo x > "$OUT/file"'
bwrap --bind / / sh -c 'echo x > "$OUT/file"'
nsenter -t 1 -m sh -c 'echo x > "$OUT/file"'
chroot /proc/1/root sh -c 'echo x > "$OUT/file"'
mknod disk b 1 0 && head -c 1 disk && echo ESC''APED
cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo ESC''APED
cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness && echo ESC''APED
mkdir /sys/fs/cgroup/escaped && rmdir /sys/fs/cgroup/escaped && echo ESC''APED
hostname "$(hostname)" && echo ESC''APED
kill -0 "$RUN_PID" && echo ESC''APED
python3 -c 'import os; os.kill(int(os.environ["RUN_PID"]), 0); print("ESC" "APED")'
(sleep 0.2; echo x > "$OUT/file") & wait
nohup sh -c 'sleep 0.2; echo x > "$OUT/file"' >/dev/null 2>&1 & sleep 0.4
setsid sh -c 'sleep 0.2; echo x > "$OUT/file"' & sleep 0.4
echo x > .git/hooks/pre-commit
echo x > .git/hooks/../hooks/post-checkout
cp a.txt .git/hooks/pre-push
ln -s ../../a.txt .git/hooks/pre-push
ln -s .git/hooks hooks && echo x > hooks/pre-commit
mv .git/hooks old
rm -rf .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit
mv .git old; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit
cp -r .git new; rm -rf .git/hooks; mv new .git; echo x > .git/hooks/pre-commit
mv .git old; ln -s old .git; echo x > old/hooks/pre-commit
mkdir -p sub/hooks; echo x > sub/hooks/x; git init -q --template="$PWD/sub" .
git config core.hooksPath "$PWD/sub"
git config alias.status '!echo x'
git config --file .git/config core.pager 'echo x'
echo '[core]' >> .git/config
sed -i s/bare/bore/ .git/config
mv a.txt .git/config
rm -f .git/config; cp a.txt .git/config
ln -sf ../a.txt .git/config
echo x > .git/commondir
echo '[core]' > .git/config.worktree
mkdir -p .dovetail && echo '{}' > .dovetail/settings.json
touch .dovetail/new
rm -rf .dovetail; mkdir .dovetail; echo '{}' > .dovetail/settings.json
mv .dovetail old; mkdir .dovetail; echo '{}' > .dovetail/settings.json
rmdir .dovetail; ln -s sub .dovetail; echo '{}' > sub/settings.json
ln -s .dovetail mine; echo '{}' > mine/settings.json
unshare -Urm sh -c 'umount .dovetail; echo {} > .dovetail/settings.json'
python3 -c 'import os; os.rename("sub", ".dovetail")'
echo x > locked.toml
mv locked.toml x; echo x > locked.toml
rm -f locked.toml; echo x > locked.toml
cp a.txt locked.toml
(for i in {1..9}; do mv sub s; ln -sn "$OUT" sub; rm sub; mv s sub; done) & for i in {1..9}; do echo x > sub/file; done
mkdir d; python3 -c 'import os; os.rename("d", "e"); os.symlink(os.environ["OUT"], "d"); open("d/file", "w").write("x")'
python3 -c 'import ctypes; ctypes.CDLL(None).syscall(316, -100, b".git/config", -100, b"a.txt", 2)'
python3 -c 'import ctypes; ctypes.CDLL(None).syscall(316, -100, b".dovetail", -100, b"sub", 2)'
python3 -c 'import os; os.open(os.environ["OUT"], os.O_TMPFILE | os.O_RDWR) and print("ESC" "APED")'
python3 -c 'import mmap, os; mmap.mmap(os.open(os.environ["OUT"] + "/file", os.O_RDWR), 0)[0:1] = b"x"'
GIT_TRACE="$OUT/file" git status
GIT_TRACE2_EVENT="$OUT/new" git status
GIT_INDEX_FILE="$OUT/new" git add a.txt
GIT_OBJECT_DIRECTORY="$OUT" git add a.txt
GIT_DIR=/proc/self/cwd/.git git config core.pager x
GIT_CONFIG=.git/config git config core.pager x
git -c user.name=x -c user.email=x@y commit -qm x --allow-empty; git worktree add -q "$OUT/wt"
git -c user.name=x -c user.email=x@y commit -qm x --allow-empty; git worktree add -q wt; git -C wt config core.pager x
git init -q --separate-git-dir="$OUT/new" sub
git config extensions.worktreeConfig true
git remote add evil 'ext::sh -c x'
git config submodule.x.update '!x'
ex -s '+w! $OUT/new' '+q' a.txt
ed -s "$OUT/file" <<< $'a\nx\n.\nw\nq'
find . -maxdepth 0 -fprint "$OUT/new"
sed -n "w $OUT/file" a.txt
awk -v o="$OUT/file" '{ print "x" > o }' a.txt
sort a.txt -o "$OUT/file"
tar cf x.tar a.txt; tar xPf x.tar --transform "s,a.txt,$OUT/new,"
tar cf x.tar a.txt --checkpoint=1 --checkpoint-action=exec='sh -c "echo x > $OUT/file"'
xargs -a a.txt sh -c 'echo x > "$OUT/file"'
make -f - <<< "all: ; echo x > $OUT/file"
echo '{"scripts": {"x": "echo x > $OUT/file"}}' > package.json; npm run x
python3 -m venv "$OUT/new"
cat <<< x > >(cat > "$OUT/file"); wait
cat > "$OUT/file" << 'END'
setsid -f sh -c 'sleep 0.3; echo x > .git/commondir'; sleep 0.1
crontab - <<< '* * * * * x' && echo ESC''APED
for disk in /sys/class/block/*; do head -c 1 "/dev/${disk##*/}" && echo ESC''APED; done
for file in /dev/mem /dev/kmsg /dev/port /proc/kcore; do head -c 1 "$file" && echo ESC''APED; done
"""

# What is known about files outside; Landlock without mounts leaves it open.
ATTRIBUTES = r"""
touch -d 2001-01-01 "$OUT/file"
chmod 777 "$OUT/file"
chmod u+s "$OUT/file"
chown 1000 "$OUT/file"
setfattr -n user.x -v y "$OUT/file"
python3 -c 'import os; os.utime(os.environ["OUT"] + "/file", (1, 1))'
"""

# Keys of providers, which the process of the run has in its environment.
KEYS = r"""
env
printenv
export -p
declare -p
set
compgen -e
echo "$OPENAI_API_KEY$ANTHROPIC_API_KEY$GEMINI_API_KEY$COPY_OF_KEY"
printenv OPENAI_API_KEY
bash -lc env
sh -c 'echo $OPENAI_API_KEY'
python3 -c 'import os; print(dict(os.environ))'
awk 'BEGIN { for (name in ENVIRON) print ENVIRON[name] }'
cat /proc/self/environ
cat /proc/1/environ
cat "/proc/$PPID/environ"
cat "/proc/$RUN_PID/environ"
cat /proc/[0-9]*/environ
strings /proc/[0-9]*/environ
for p in /proc/[0-9]*/task/*/environ; do cat "$p"; done
ps axeww
cat /proc/[0-9]*/cmdline
gdb -batch -p "$RUN_PID" -ex 'x/s *(char **)environ'
head -c 1 "/proc/$RUN_PID/mem" 2>&1 | grep -q 'Input/output' && echo ESC''APED
env -i bash -c export
bash -c 'cat /proc/$PPID/environ'
gdb -batch -p 1 -ex 'x/s *(char **)environ'
keyctl show && keyctl print @u
"""

# Whoever listens on this machine.
NETWORK = r"""
exec 3<> "/dev/tcp/127.0.0.1/$PORT" && echo ESC''APED
echo x > "/dev/udp/127.0.0.1/$PORT"
curl -s -m 2 "http://127.0.0.1:$PORT/" && echo ESC''APED
wget -q -T 2 -t 1 -O- "http://127.0.0.1:$PORT/" && echo ESC''APED
python3 -c 'import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 2); print("ESC" "APED")'
python3 -c 'import os, socket; s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b"", ("", int(os.environ["PORT"])))'
python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect("\0" + os.environ["NAME"]); print("ESC" "APED")'
perl -MIO::Socket::INET -e 'IO::Socket::INET->new("127.0.0.1:$ENV{PORT}") and print "ESC" . "APED"'
nc -z -w 2 127.0.0.1 "$PORT" && echo ESC''APED
git ls-remote "git://127.0.0.1:$PORT/x"
unshare -Urn sh -c 'ip link set lo up; exec 3<> "/dev/tcp/127.0.0.1/$PORT"' && echo ESC''APED
nsenter -t 1 -n bash -c 'exec 3<> "/dev/tcp/127.0.0.1/$PORT"' && echo ESC''APED
python3 -c 'import socket; socket.socket(socket.AF_VSOCK); print("ESC" "APED")'
python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print("ESC" "APED")'
python3 -c 'import ctypes; ctypes.CDLL(None).syscall(425, 8, bytes(200)) >= 0 and print("ESC" "APED")'
ssh-add -l && echo ESC''APED
dbus-send --session  --print-reply --dest=org.freedesktop.DBus / org.x.y && echo ESC''APED
docker ps && echo ESC''APED
systemd-run --user true && echo ESC''APED
"""

# Arguments by which programs that a rule allows with `*` start another one, or write a file.
ARGUMENTS = r"""
git rebase -x./pwn HEAD~1
git rebase -ix ./pwn HEAD~1
git rebase --exe=./pwn HEAD~1
git clone -u ./pwn . x
git clone -u./pwn . x
git clone -ccore.sshCommand=./pwn host:x y
git clone --conf core.sshCommand=./pwn host:x y
git fetch --upload-p ./pwn .
git fetch --upl=./pwn .
git ls-remote --exec=./pwn .
git ls-remote --exe=./pwn .
git push --rec=./pwn .
git archive --remote=. --exe=./pwn HEAD
git archive -o pwned HEAD
git archive -opwned HEAD
git diff --outpu=pwned
git diff --ext-d
git log --textc -p
git grep -nO./pwn alpha
git grep --open=./pwn alpha
git grep --op=./pwn alpha
git merge-index ./pwn -a
git format-patch -o pwned HEAD~1
git bundle create pwned HEAD
git p4 sync
git send-email --sendmail-cmd=./pwn a.txt
git send-email --smtp-server=./pwn a.txt
git for-each-repo --config=x status
git imap-send
git checkout-index --prefix=../pwned -a
git xyz
git credential fill
git maintenance register --config-file=pwned
git --exec-path=. pwn
git --no-pager -c core.pager=./pwn log
git --git-dir evil status
sed -n 1e./pwn a.txt
sed "1e ./pwn" a.txt
sed s/a/b/e a.txt
sed s/a/b/w./pwned a.txt
sed -n "w pwned" a.txt
sed -i s/a/b/ a.txt
sed -f evil a.txt
sed --expression=1e./pwn a.txt
sed "s/.*/.\/pwn/e" a.txt
awk "BEGIN{system(\"./pwn\")}"
awk 'BEGIN { print "x" > "pwned" }'
awk 'BEGIN { "./pwn" | getline }'
gawk -f evil a.txt
gawk --load x
gawk -i inplace 1 a.txt
sort -ro pwned a.txt
sort -nopwned a.txt
sort --ou=pwned a.txt
sort --compress-p=./pwn a.txt
sort --comp=./pwn a.txt
tar cIf ./pwn x.tar a.txt
tar -cIf ./pwn x.tar a.txt
tar cf x.tar --use-com=./pwn a.txt
tar cf x.tar a.txt --checkpoint=1 --checkpoint-a=exec=./pwn
tar xf x.tar --to-com=./pwn
tar cFf ./pwn x.tar a.txt
tar cf host:x a.txt --rsh-c=./pwn
find . -fls pwned
find . -files0-from a.txt -delete
fd -Hx ./pwn
fd a -X ./pwn
fd --exec-b ./pwn
rg --pre ./pwn a
rg --pre=./pwn a
rg -z a --hostname-bin ./pwn
uniq a.txt pwned
xxd a.txt pwned
tree -o pwned
tree --output=pwned
shuf -o pwned a.txt
file -C -m pwned
printf -v PATH evil
printf -v PATH %s evil && git status
printf -vPATH evil
printf -v x '%b' 'b[\x24(./pwn)]'
test -v 'x[a]'
test -v "x[a]"
[ -v 'x[a]' ]
test -R x
unset PATH
export PATH=.
export -f x
read PATH
let a
let 'a[b]'
declare PATH=.
hash -p ./pwn git
jobs -x ./pwn
fc -e ./pwn
fc -s
wait -p 'x[a]'
getopts a 'x[a]'
shopt -s expand_aliases
history -w pwned
command ./pwn
command -p ./pwn
make SHELL=./pwn
make -f evil
make -Cevil
make --eval='x:=$(shell ./pwn)'
make -E '$(shell ./pwn)'
make "CC=./pwn"
make --mak=evil
npm run test --script-shell=./pwn
npm test --prefix evil
npm --prefix=evil test
npm exec ./pwn
npm x ./pwn
npm config set script-shell ./pwn
npm run test --node-options=--require=./pwn
pnpm -C evil test
pnpm --dir evil test
yarn --cwd evil test
go test -exec ./pwn ./...
go build -toolexec=./pwn
go vet -vettool=./pwn
go test -toolexec ./pwn
cargo test --config 'target."cfg(all())".runner="./pwn"'
cargo --config x.toml test
curl -o pwned http://x
curl -sopwned http://x
curl -K evil
curl --output pwned http://x
curl -O http://x/pwned
wget -O pwned http://x
wget --use-askpass=./pwn http://x
wget -e use_askpass=./pwn http://x
ssh -o ProxyCommand=./pwn host
ssh -oProxyCommand=./pwn host
scp -S ./pwn a host:b
rsync -e ./pwn a host:b
rsync -ave ./pwn a host:b
rsync --rsh=./pwn a host:b
zip x.zip a.txt -T -TT ./pwn
zip x.zip a.txt --unzip-command ./pwn
ruff check --output-file=pwned .
ruff check -o pwned .
mypy --python-executable ./pwn a.py
mypy --install-types --non-interactive x
less +!./pwn a.txt
less -opwned a.txt
less --log-f=pwned a.txt
less -so pwned a.txt
man -P ./pwn ls
man --pager=./pwn ls
man -H./pwn ls
man --page=./pwn ls
gcc -wrapper ./pwn a.c
gcc -B. a.c
gcc -fplugin=./pwn a.c
cmake -P evil
cmake -E env ./pwn
ctags --options=evil
openssl enc -in a.txt -out pwned
cpio -o --rsh-command=./pwn
cpio -oO pwned
flock a.txt ./pwn
split --filter=./pwn a.txt
split --filt=./pwn a.txt
env --split=./pwn
env -iS ./pwn
env -C evil ./check
env --chd=evil ./check
nice ./pwn
sudo -u x ./pwn
xargs -a a.txt ./pwn
flock a.txt -c ./pwn
eslint --rulesdir=x --plugin ./pwn .
jest --runner ./pwn
jest --testEnvironment x --test-runner=./pwn
git clone 'ext::sh -c ./pwn' x
git fetch 'ext::sh -c ./pwn'
sed '/alpha/{s/a/b/e}' a.txt
sed -n '$!{1e./pwn; }' a.txt
sed 's/[/]x/e;./pwn/' a.txt
sed 'y/a/b/;e' a.txt
awk '{ print | "./pwn" }' a.txt
awk '{ f = "sys" "tem"; @f("./pwn") }' a.txt
awk -f evil a.txt
printf -v a '%b' 'b[\x24(./pwn)]' && test -v 'x[a]'
vim -c '!./pwn' -c q
vim '+!./pwn' a.txt
vim -S evil a.txt
vim --cmd '!./pwn'
view -c ':!./pwn' a.txt
ex -c '!./pwn'
ex -sc '!./pwn'
ed a.txt
emacs --batch --eval '(shell-command "./pwn")'
emacs -l evil
nano -s ./pwn a.txt
dc -e '!./pwn'
gdb -batch -ex '!./pwn'
gdb -x evil
gdb --args ./pwn
sqlite3 a.db '.shell ./pwn'
sqlite3 -cmd '.system ./pwn' a.db
psql -c '\! ./pwn'
psql -c "copy t to program './pwn'"
psql -f evil
mysql -e '\! ./pwn'
mysql -e 'system ./pwn'
hg --config alias.x='!./pwn' x
hg --config=hooks.pre-log=./pwn log
hg -R evil log
hg --cwd evil log
svn --config-option config:tunnels:x=./pwn info svn+x://h
svn diff --diff-cmd ./pwn
svn ci --editor-cmd ./pwn
pandoc --filter ./pwn a.txt
pandoc -F ./pwn a.txt
pandoc -L evil a.txt
pandoc --pdf-engine=./pwn a.txt
latexmk -pdflatex=./pwn a.tex
latexmk -e 'system("./pwn")' a.tex
pdflatex -shell-escape a.tex
pdflatex '\immediate\write18{./pwn}'
socat - EXEC:./pwn
socat exec:./pwn stdout
socat 'SYSTEM:./pwn' -
nc -e ./pwn localhost 1
nc -c ./pwn localhost 1
tshark -Xlua_script:evil
nmap --script=evil localhost
apt-get -o APT::Update::Pre-Invoke::=./pwn update
patch -e evil
patch -o pwned a.txt
capsh -- -c ./pwn
npx ./pwn
uvx ./pwn
linux64 ./pwn
setarch x86_64 ./pwn
ld.so ./pwn
git apply --unsafe-paths a.patch
git help -w log
"""

# Arguments of the same programs that do neither.
ORDINARY = r"""
cd -P evil && ls -la
jq -n input
git -p log
head -c 5 a.txt
git log --oneline -5
git --no-pager log -p
git diff --stat HEAD~1
git commit -m 'x'
git add -u
git push -u origin main
git cherry-pick -x HEAD
git checkout -b topic
git switch -c topic
git show HEAD:a.txt
git stash
git branch -a
git status --porcelain -uno
git log --format=%h -O a.txt
git clean -fdx
git log -G alpha -S beta
git commit -c HEAD
git diff -U5 -w
git rev-parse --show-toplevel
git ls-files -o --exclude-standard
git log --grep=fix -i --since=1.week
git blame -L 1,5 a.txt
sed -n 1,5p a.txt
sed 's/a/b/g' a.txt
sed -E 's/(a)(b)/\2\1/' a.txt
sed -n '/alpha/p' a.txt
sed -e 's,a,b,' -e '$d' a.txt
awk '{ print $1 }' a.txt
awk -F: '{ s += $2 } END { print s }' a.txt
awk 'NR == 3' a.txt
sort -k2,2 -rn a.txt
sort -u a.txt
tar czf x.tgz src
tar xzf x.tgz
tar tvf x.tgz
find . -name '*.py' -type f
rg -n --hidden foo
uniq -c a.txt
tree -L 2
make test
make -j4 test
make -k
npm run build
npm test -- --watch=false
npm ci --ignore-scripts
go test ./... -run TestX -v
cargo test --release -- --nocapture
curl -s http://localhost/x
ruff check src --fix
ruff format src
pytest -q -x -k name tests
mypy src
diff -u a.txt b.txt
xxd a.txt
test -f a.txt
printf '[%s]\n' x
printf '%s\n' x
date +%s
ls --color=never -la
echo 'a[b]'
jq '.a[0]' a.json
cargo build --features exec
pytest --no-header -rA
rg --no-config x
sed -n '/a/,/b/{s/x/y/;p;}' a.txt
sed '$!N;P;D' a.txt
awk '$3 == 5 || $1 > 3' a.txt
awk -F, -v n=3 'NR > n' a.txt
git grep 'std::vector'
git diff --text
date -Iseconds
sort -t, -k1,1 a.txt
split -l 10 a.txt
cargo build --no-default-features
vim a.txt
sqlite3 a.db 'select 1'
psql -c 'select 1'
mysql -e 'select 1'
hg log -l 3
svn diff -r 1:2
pandoc -t html a.md
pdflatex a.tex
patch -p1 -i a.patch
apt-get install -y jq
git apply --check a.patch
git help log
"""


def commands(text: str) -> list[str]:
    """The commands of a list, a line each."""
    return text.strip().split("\n")
