"""Names of files and folders that hold credentials, by family, and of those that are known to be harmless.

Everything is lower case; a blank inside a name is written ``|``. ``files`` says how the tables are used.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FOLDERS = _words(
    ".ssh .aws .azure .gnupg .gpg .kube .docker .oci .aliyun .bluemix .chef .password-store .mozilla .thunderbird"
    " .electrum .bitcoin .ethereum .credentials .secrets .certs .pki .vnc .purple keyrings keychains gcloud kwalletd"
    " .doctl .ibmcloud .pulumi .wrangler .cloudflared .vault.d .okta .heroku .supabase .railway .snowsql .snowflake"
    " .databricks .minikube .vagrant .vagrant.d .rancher .argocd .terraform .terragrunt .kaggle .huggingface .openai"
    " .anthropic .monero .litecoin .dogecoin .evolution .irssi .weechat .znc .mutt .mailpile .dropbox .remmina"
    " .dbeaver .jenkins private-keys-v1.d terraform.tfstate.d"
)
"""Everything below a folder of one of these names counts."""
PROGRAM_FOLDERS = _words(
    "doctl hcloud scw flyctl filezilla winscp mobaxterm mremoteng usersecrets smstemp pam.d"
    " google|cloud|directory|sync google|password|sync github-copilot"
)
"""The same, but not in an address and not among the sources of the program itself."""

FILES = _words(
    ".netrc _netrc .pgpass .npmrc .yarnrc.yml .pypirc .git-credentials .htpasswd .htdigest .my.cnf .mylogin.cnf"
    " .s3cfg .boto .dockercfg .dockerconfigjson .vault-token .vault_pass .smbcredentials .fetchmailrc .msmtprc"
    " .muttrc .ftpconfig .rhosts .shosts .envrc .flaskenv .renviron .xauthority .trc .tugboat .databrickscfg"
    " .terraformrc .condarc .irbrc .esmtprc sftp-config.json .remote-sync.json authorized_keys authorized_keys2"
    " known_hosts sshd_config shosts.equiv hosts.equiv opasswd master.passwd spwd.db ntds.dit wallet.dat key3.db"
    " key4.db cert9.db logins.json signons.sqlite cookies.sqlite cookies.txt formhistory.sqlite places.sqlite"
    " cookies.binarycookies consolehost_history.txt unattend.xml unattended.xml sysprep.xml sysprep.inf"
    " autounattend.xml sysprepunattend.xml winscp.ini ultravnc.ini filezilla.xml sitemanager.xml recentservers.xml"
    " ws_ftp.ini wcx_ftp.ini web.config applicationhost.config wp-config.php configuration.php localsettings.php"
    " config.inc.php settings.inc.php local_settings.py parameters.yml local.xml database.yml secret_token.rb"
    " knife.rb master.key application_default_credentials.json legacy_credentials azureprofile.json"
    " accesstokens.json msal_token_cache.json kubeconfig admin.conf kubelet.conf k3s.yaml rke2.yaml"
    " terraform.tfstate terraform.rc wg0.conf ventrilo_srv.ini config.php settings.php connect.php psk.txt"
    " ssh-agent.sock service_principal_entries.bin azurermcontext.json datasources.xml ipsec.secrets chap-secrets"
    " pap-secrets wpa_supplicant.conf krb5.keytab sssd.conf secrets.tdb passdb.tdb smbpasswd sasl_passwd sasldb2"
    " debian.cnf pg_hba.conf pureftpd.pdb pureftpd.passwd tomcat-users.xml mgmt-users.properties standalone.xml"
    " hudson.util.secret initialadminpassword settings-security.xml nuget.config auth.json oauth_creds.json"
    " kaggle.json ngrok.yml rclone.conf hidden_service adbkey jupyter_notebook_config.json anaconda-ks.cfg"
    " preseed.cfg ntuser.dat hiberfil.sys pagefile.sys robomongo.json gradle.properties .mcp.json rootkey.csv"
    " docker.sock containerd.sock podman.sock crio.sock cloud-init-output.log hdb.php omniauth.rb carrierwave.rb"
    " deployment-config.json heroku.json publishsettings pillar.sls proftpdpasswd servlist.conf"
    " dbeaver-data-sources.xml azureauth.json web|data wallet.sqlite gpg.conf dirmngr.conf authorized_hosts"
    " autologin azurermcontextsettings.json msal_token_cache.dat config_default cookie.json openclaw.json"
)
FILES |= _words(  # what a shell runs at its start, where people export their tokens
    ".bashrc .bash_profile .bash_login .bash_aliases .zshrc .zshenv .zprofile .zlogin .zsh_profile .cshrc .tcshrc"
    " .kshrc .mkshrc .login .gitconfig .pam_environment config.fish microsoft.powershell_profile.ps1"
)
FILES |= _words(  # what was typed
    ".zhistory .zsh_history .histfile .lesshst .dbshell .viminfo .node_repl_history fish_history .mycli-history"
    " cookies.json cookie.txt cookiejar cookiejar.txt .cookie .cookies .pgcli_history login|data"
    " login|data|for|account .wget-hsts journal.txt .jrnl_config"
)
FILES |= _words(  # clients of databases
    ".pgservice.conf .pg_service.conf pg_service.conf .mysqlrc .psqlrc .mongorc.js .mongoshrc.js .sqliterc .cqlshrc"
    " .myclirc .snowsqlrc tnsnames.ora sqlnet.ora cwallet.sso orapwd connections.xml connections.json"
    " credentials-config.json data-sources.json dbvis.xml sqlstudio.bin server_user_password.xml pwd.db kadm5.acl"
    " .k5login workbench_user_data.dat portable_settings.txt sqlaliases23.xml dbconfig.php dbconn.php dbconnect.php"
    " db_config.php dbaccess.php mongoid.yml mongo.yml redis.acl users.acl jdbc.properties hibernate.cfg.xml"
    " liquibase.properties flyway.conf datasource.properties database.ini db.ini"
)
FILES |= _words(  # clients of files, terminals and desktops elsewhere
    ".ftppass ftpconfig.json sftp.json ftp-sync.json ftpsync.settings webservers.xml webservers.local.xml"
    " datasources.local.xml remote-sync.json .lftprc .ncftp .smbcredential confcons.xml mobaxterm.ini"
    " rdcman.settings filezilla-server.xml filezilla|server.xml fzdefaults.xml quick.dat sm.dat sites.ini smdata.dat"
    " coreftp.cfg flashfxp.ini ultravnc.ini tightvnc.ini vncpasswd winvnc.ini asbru.yml .vncpasswd"
)
FILES |= _words(  # mail and chat
    ".offlineimaprc .mbsyncrc .isyncrc .getmailrc .mailrc .authinfo .newsauth .davmail.properties .davfs2"
    " .imapfilter .procmailrc .ircrc .xchat2 .irssirc otr.private_key otr.fingerprints accounts.xml passwd.client"
    " exim4.passwd dovecot-sql.conf.ext dovecot-ldap.conf.ext sasl_password prosody.cfg.lua ejabberd.yml cccam.cfg"
    " server.cfg express.conf configuration.user.xpl"
)
FILES |= _words(  # clouds, clusters and registries
    ".ossutilconfig .obsutilconfig .cos.conf .ovh.conf ovh.conf .civo.json .vultr-cli.yaml .linode-cli .linodecli"
    " .exoscale.toml .bosh_config .sentryclirc .flyrc .hub .hcloud .gitlab-runner .aws-vault .cdsapirc .kaggle.json"
    " .ngrok2 .claude.json .roadtools_auth .google_authenticator .coveralls.yml .s3.yml .fog aws.yml s3.yml"
    " amazon_s3.yml newrelic.yml adc.json firebase-tools.json tokencache.dat service_principal_entries.json"
    " msal_http_cache.bin msal_token_cache.bin accesstokens.db access_tokens.db credentials.db google-services.json"
    " googleservice-info.plist credentials.tfrc.json terraform.tfvars.json controller-manager.conf scheduler.conf"
    " super-admin.conf bootstrap-kubelet.conf kubelet-config.json rke.yaml cluster.rkestate kops.yaml clouds.yaml"
    " clouds.yml openrc.sh admin-openrc.sh keystonerc keystonerc_admin stackrc overcloudrc auth.toml pip.conf"
    " pip.ini jupyter_server_config.json jupyter_config.json jupyter_cookie_secret key.properties signing.properties"
    " smtp.json smtp.yml smtp.ini release.properties salesforce.js buildkite-agent.cfg buildagent.properties"
    " codeship.aes jenkins.plugins.publish_over_ssh.bapsshpublisherplugin.xml gitlab.rb gitlab.yml"
    " gitlab-secrets.json vault.hcl vault-ssh-helper.hcl consul.hcl airflow.cfg odoo.conf .odoorc"
    " openerp-server.conf gvm-tools.conf passbolt.php"
)
FILES |= _words(  # assistants, and the tools they were given access to
    "claude_desktop_config.json mcp.json mcp_config.json mcp_settings.json cline_mcp_settings.json"
    " google_accounts.json .aider.conf.yml"
)
FILES |= _words(  # rings and agents of keys, wallets
    "pubring.kbx pubring.gpg secring.gpg trustdb.gpg gpg-agent.conf s.gpg-agent s.gpg-agent.ssh ssh_config .sshrc"
    " default_wallet wallet.json keystore.json multibit.wallet seed.txt mnemonic.txt .keystore .keychain"
    " known_hosts.old"
)
FILES |= _words(  # how Windows and its managers install machines and keep their accounts
    "groups.xml scheduledtasks.xml customsettings.ini bootstrap.ini sensorconfiguration.json mdatp_managed.json"
    " kcpassword autologin.conf vault.ini dbparm.ini passparm.ini padr.ini paragent.ini tsparm.ini"
    " pvconfiguration.xml cacpmscanner.exe.config appprovider.conf machine.config connectionstrings.config ntds.jfm"
    " security.sav system.sav sam.sav sam.hiv system.hiv security.hiv secedit.sdb ks.cfg autoinst.xml answers.xml"
    " cloud-config.txt user-data.yml"
)
FILES |= _words(  # pages and content systems
    "env.php wp-config.txt parameters.yaml settings.local.php settings_local.py local_settings.yml localconfig.php"
    " config.local.php db-config.php parameters.ini mt-config.cgi localconf.php localconfiguration.php"
    " application.secret.yml"
)
"""Names of files, wherever they are. Most such files are found by the words of their names instead, below."""

EXTENSIONS = _words(  # keys, stores of keys, certificates with their keys
    "pem p12 pfx p8 jks jceks keystore truststore bks bcfks key pkcs12 ppk kdb kdbx keychain keychain-db keytab"
    " keyring keypair privkey pvk jwk snk mobileprovision provisionprofile gpg pgp gnupg asc kbx spc der vcrd vpol"
    " fve bek tpm ccache sso rsa dsa ecdsa ed25519 p7b p7c p7s"
)
EXTENSIONS |= _words(  # passwords, vaults and wallets
    "agilekeychain opvault 1pux 1pif psafe3 psafe pwsafe rfp rfx vault session enpass enpassdb enpassdbx kwl"
    " kwallet wallet keepass bitwarden lastpass dashlane gnucash dayone avastlic htpasswd passwd passwords password"
    " pass pwd pwl credentials credential creds cred secret secrets token apikey authtoken sdtid env"
)
EXTENSIONS |= _words(  # ways to another machine, and what a cloud keeps of one
    "ovpn pcf tblk nmconnection mobileconfig rdp rdg rdm rts rtsx rtsz remmina vnc ica tvopt ucs psk tfstate tfvars"
    " tfrc tfplan publishsettings pubxml azurepubxml cscfg ncx sdf mdf"
)
EXTENSIONS |= _words("dmp mdmp hprof pcap pcapng cap sqldump")
"""Extensions of keys, vaults, memory images, recordings and dumps."""

ENDINGS = (
    *(".tfstate.backup", ".tfvars.json", ".pubxml.user", ".sql.gz", ".secret.exs", "dump.sql", "backup.sql"),
    *("dump.gz", "backup.sql.gz", ".private.env.json", ".postman_environment.json", ".postman_collection.json"),
    *(".postman_globals.json", "erlang.cookie", "config.inc.php", "-config.php", "_config.php"),
)
"""How names end of which the extension alone says nothing."""

BEGINNINGS = (
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "gpg-agent"),
    *("utc--", "krb5cc", "ssh_host_", "client_secret", "authkey_", "creds", "pgadmin", "sess_"),
)
"""How names begin that end in a number, an account or a date."""

BACKUPS = _words("bak old orig save swp copy backup 1 2")
"""Extensions of what was kept of a file: it holds what the file held."""

KEYS = ("_rsa", "_dsa", "_ecdsa", "_ed25519", "_history", "_credentials")
"""How names end that have no extension."""

SECRET_WORDS = _words(
    "secret secrets credential credentials creds password passwords passwd passphrase htpasswd token apikey apikeys"
    " privatekey 1password lastpass bitwarden keepass wireguard openvpn keystore keychain keyring wallet mnemonic"
    " seedphrase serviceaccount adminsdk appsettings accesskeys clientsecret cred passphrases passcode passcodes"
    " keypair keypairs privkey kubeconfig keyfile signingkey authkey sshkey sshkeys accesskey secretkey masterkey"
    " authtoken accesstoken refreshtoken apitoken oauthtoken tokencache totp dashlane enpass metamask gshadow"
    " tfstate tfvars saml oauth oauth2 private"
)
SECRET_PAIRS = _words(
    "api:key api:keys access:key access:keys access:tokens private:key private:keys secret:key secret:keys ssh:key"
    " ssh:keys service:account recovery:codes backup:codes seed:phrase auth:tokens api:tokens signing:key deploy:key"
    " encryption:key master:key host:key account:key license:key server:key client:key vault:pass vault:yml"
    " vault:yaml vault:json vault:txt db:dump sql:dump db:backup sql:backup key:pair key:store aws:keys aws:key"
    " gcp:key gcp:keys tls:key ssl:key rsa:key gpg:key pgp:key root:key ca:key running:config startup:config"
    " kube:config refresh:tokens bearer:tokens google:authenticator pass:phrase user:pass bash:history zsh:history"
    " sh:history ksh:history fish:history mysql:history psql:history irb:history python:history node:history"
    " redis:history mongo:history sqlite:history shell:history oauth:tokens jwt:tokens session:tokens"
)
SERVICES = _words(
    "redis mysql mariadb mongod postgresql pgsql pgbouncer snmpd smb samba ldap slapd radiusd rsyncd vsftpd proftpd"
    " pureftpd zabbix krb5 amportal manager openvpn wireguard ftp psk vnc stunnel dovecot exim postfix sendmail"
    " supervisord hostapd racoon strongswan swanctl ipsec vpnc openfortivpn ddclient inadyn mosquitto rabbitmq"
    " grafana influxdb couchdb mongodb keycloak asterisk sip nagios icinga gitea gogs dhcpd bitcoin smtp wg wg0 wg1"
    " wg2 vpn pam"
)
SETTINGS = _words("conf cnf ini config cfg")
"""Settings of a service, which keeps its passwords there."""
KEY_DATA = _words("json txt b64 bin der")
"""Extensions of what is a key where its name ends in that word."""
BARE = _words("credentials passwords passwd secrets keystore keychain keyring wallet")
"""Names without an extension that are files' rather than words."""
BARE_WORDS = _words(
    "password passphrase token creds keypair privatekey apikey gshadow sudoers sam ntds kwallet gnucash"
    " agilekeychain opvault dayone keepass sqldump mysqldump tfstate"
)
"""The same of words that are names of folders in a program, where they are not meant."""
BARE_ENDS = _words("token password passwd passphrase wallet creds credentials secret privkey apikey keypair key")
"""The last words of such names; "git-secrets" and "react-native-keychain" are programs."""
SCRIPTS = _words("py rb js ts php exs sh ps1")
SCRIPT_STEMS = _words("secret secrets credentials creds passwords apikeys api_keys api-keys secret_key secret_keys")
"""Programs that consist of secrets, unless they stand among the others."""
SOURCES = _words(
    "src lib libs packages pkg internal cmd app apps components pages views modules vendor crates node_modules"
    " site-packages test tests docs doc examples include source sources core server client web api backend frontend"
    " locales i18n templates styles assets public static auth oauth oauth2 v1 v2 v3 user username users login"
    " account email id feature feat fix bugfix hotfix chore release origin"
)
"""Folders of programs, steps of routes and beginnings of branches: a word behind one names no file."""
JOINED = (
    *("password", "passwd", "privatekey", "secretkey", "apikey", "accesstoken", "authtoken", "tokencache"),
    *("serviceaccount", "credential", "kubeconfig", "clientsecret"),
)
"""What is secret inside a longer word, or in several: "myapikey", "api-key"."""
WORD_ENDS = ("token", "secret", "secrets")
"""How such words end; "tokenizer" and "secretary" only begin so."""
CLOUDS = _words(
    "aws gcp gcloud azure digitalocean linode cloudflare heroku openstack aliyun alicloud ibmcloud oci scaleway hetzner"
)
DATA = _words("json yml yaml ini conf cfg txt properties toml xml")
"""A file that is called as a cloud, or ends in "vault", and holds data."""
LISTS = _words("pass passes pw pwd pwds accounts logins login pins userpass tokens keys")
DOCUMENTS = _words("txt doc docx xls xlsx ods odt rtf one")
"""Documents by the names under which people write passwords down."""
SECRET_FOLDERS = _words(
    "secrets credentials passwords ssh_keys private_keys private-keys ssh-keys sealed-secrets creds api_keys"
    " api-keys keystores wallets .private certs certificates private keypairs"
)
"""Folders in which data counts, and programs do not."""
HARMLESS_WORDS = _words(
    "policy policies reset guide template templates example examples sample samples schema test tests docs rules"
    " strength form generator help howto readme types spec dist style styles theme design color colors parser usage"
)
"""Beside one of these a secret word is only talked about."""
PROGRAMS = _words(
    "py pyi pyc ipynb js mjs cjs ts jsx tsx vue svelte java kt scala groovy go rs rb erb php c h cc cpp hpp cs fs"
    " swift m dart lua pl r jl ex exs erl hs ml clj sh bash ps1 bat html htm css scss sass less md mdx rst adoc haml"
    " slim tex pdf png jpg jpeg gif svg ico webp mp3 mp4 woff woff2 map proto graphql snap lock po sum mod sol"
    " gradle pug ejs hbs twig zig"
)
"""Extensions of programs, pages and pictures: these are about passwords, the others hold some."""

ETC_HARMLESS = _words(
    "hosts hostname os-release lsb-release debian_version redhat-release alpine-release timezone localtime"
    " resolv.conf issue issue.net motd services protocols shells mime.types locale.conf locale.gen locale.alias"
    " host.conf nsswitch.conf networks rpc machine-info profile bash.bashrc inputrc vimrc nanorc manpath.config"
    " terminfo alternatives fonts xdg magic apt dpkg nginx systemd logrotate.conf logrotate.d ld.so.conf gitconfig"
    " ca-certificates.conf zoneinfo"
)
ETC_ALWAYS = _words(
    "passwd shadow gshadow group sudoers sudoers.d master.passwd security passwd- shadow- passwd~ shadow~"
)
HOME_HARMLESS = _words(
    ".cache .vimrc .vim .nvim .tmux.conf .inputrc .editorconfig .gitignore .gitignore_global .gitattributes .local"
    " .config .vscode .oh-my-zsh .nvm .pyenv .rbenv .rustup .npm .cargo .m2 .gradle .venv .virtualenvs .asdf .emacs"
    " .emacs.d .nanorc .screenrc .hushlogin .themes .icons .fonts .dotfiles .bash_logout"
)
PROJECT_HARMLESS = _words(
    ".git .github .gitlab .gitea .gitkeep .gitmodules .mailmap .circleci .devcontainer .well-known .idea .vs"
    " .vscode-test .fleet .zed .cursor .cursorrules .claude .venv .tox .nox .next .nuxt .output .svelte-kit"
    " .storybook .husky .changeset .yarn .pnpm-store .parcel-cache .turbo .vercel .netlify .serverless .vitepress"
    " .terraform.lock.hcl .python-version .ruby-version .node-version .tool-versions .nvmrc .sdkmanrc .java-version"
    " .flake8 .clang-format .clang-tidy .clangd .bundle .rspec .mvn .settings .project .classpath .dart_tool"
    " .metadata .ds_store .keep .nojekyll .htaccess .eggs .ipynb_checkpoints .hypothesis .coverage .coveragerc"
    " .nyc_output .trash .snapshots .obsidian .hugo_build.lock .stack-work"
)
TOOLS = _words(
    "eslintrc prettierrc babelrc stylelintrc browserslistrc nycrc mocharc commitlintrc lintstagedrc huskyrc swcrc"
    " postcssrc jshintrc tslintrc yarnrc pylintrc isort mypy ruff rubocop markdownlint editorconfig releaserc czrc"
    " watchmanconfig luacheckrc shellcheckrc yamllint hadolint sqlfluff buckconfig bazelrc bazelversion dockerignore"
)
"""Hidden names that belong to linters and builds, with any extension."""
CONFIG_HARMLESS = _words(
    "nvim vim fish htop alacritty kitty i3 sway fontconfig gtk-2.0 gtk-3.0 gtk-4.0 starship.toml mimeapps.list"
    " user-dirs.dirs user-dirs.locale pulse nano bat lf ranger tmux systemd autostart wezterm zed helix lazygit yazi"
    " foot waybar hypr"
)
STATE_HARMLESS = _words("apt dpkg pacman rpm flatpak snapd dbus man-db ucf plymouth locales alsa app-info swcatalog")
DEVICES_HARMLESS = _words("null zero full random urandom stdin stdout stderr tty fd ptmx pts")
PROCESS_SECRETS = _words("environ mem maps smaps cmdline fd cwd root auxv stack syscall exe task")
LOGS = _words("auth.log secure audit btmp wtmp lastlog faillog sudo.log cloud-init.log tallylog vault")
LIBRARY = _words(
    "keychains cookies messages mail safari accounts calendars homekit identityservices group|containers"
    " application|support"
)
BROWSERS = _words(
    "user|data firefox chrome google-chrome chromium brave-browser microsoft-edge opera vivaldi opera|stable mozilla"
)
PROFILE = _words(
    "login|data cookies web|data local|state history bookmarks preferences profiles profiles.ini default"
    " application|support appdata"
)
PAIRS = _words(
    ".git/config .git/credentials .svn/wc.db .hg/hgrc .gem/credentials .cargo/credentials .cargo/credentials.toml"
    " .composer/auth.json .m2/settings.xml .gradle/gradle.properties .android/debug.keystore huggingface/token"
    " .fly/config.yml .netlify/config.json .dbt/profiles.yml .anydesk/service.conf ssl/private tls/private"
    " pki/private run/secrets secrets/kubernetes.io serviceaccount/token serviceaccount/ca.crt system-connections/"
    " system32/config windows/repair windows/panther windows/ntds config/regback microsoft/credentials"
    " microsoft/protect microsoft/vault microsoft/crypto config/sam sysvol/policies dslocal/nodes share/keyrings"
    " share/remmina share/telegramdesktop tdesktop/tdata signal/config.json slack/storage discord/local|storage"
    " backups/shadow.bak .claude/.credentials.json .codex/auth.json inetsrv/config .ssh/config gh/hosts.yml"
    " jenkins/secrets jenkins/credentials.xml data/pg_hba.conf .config/hub .bundle/config .purple/accounts.xml"
    " gitlab-runner/config.toml sms/data .circleci/cli.yml .circleci/local.yml .docker/config.json .kube/config"
    " .aws/config .aws/credentials .irssi/config .weechat/irc.conf .weechat/sec.conf .azure/credentials"
    " .openshift/express.conf library/mail library/messages library/safari library/cookies thunderbird/profiles"
    " firefox/profiles"
)
PAIRS |= frozenset(pair[1:] for pair in PAIRS if pair[0] == "." and not pair.startswith(".config/"))
"""A folder and what stands in it; people keep hidden ones without their dot, too."""
